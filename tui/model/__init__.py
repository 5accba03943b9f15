"""What is known, as frozen values: no clock, file, thread or network in here."""

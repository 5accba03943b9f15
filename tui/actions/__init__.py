"""The only code that changes the world: plans, and the process that carries them out."""

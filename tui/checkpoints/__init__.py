"""What is really on disk: indexes read without torch, sums checked, numbers looked at."""

"""Screens over the main one: help, start."""

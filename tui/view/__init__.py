"""Snapshot to rows of (text, role). Pure; knows width, never colour."""

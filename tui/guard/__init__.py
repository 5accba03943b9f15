"""Headless: what watches a run when nobody looks, and keeps what was seen."""

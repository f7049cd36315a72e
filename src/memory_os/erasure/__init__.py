"""Erasing records: every copy of them, with a receipt that says where there were some."""

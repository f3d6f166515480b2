"""Files as a source: rows of tables (table.py), lines of growing text files (lines.py, line_source.py)."""

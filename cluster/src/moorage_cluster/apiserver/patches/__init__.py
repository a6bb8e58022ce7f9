"""Every way to patch an object; all are functions of plain values."""

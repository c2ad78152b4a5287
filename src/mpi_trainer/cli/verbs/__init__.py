"""One file per command; a group of commands is a folder."""

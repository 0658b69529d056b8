"""The weekly report: what one week of questions shows, for one channel or the terminal."""

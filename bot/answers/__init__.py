"""Answers that people save: their files, proposals that wait for approval, and limits on what may be saved."""

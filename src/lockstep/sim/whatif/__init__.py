"""What would become of a job that is not there yet.

Commands alone import it; it imports the rest of ``sim``.
Start reading at ``forecast.py``.
"""

"""What a simulation leaves: records of jobs and placements, figures, reports, charts.

``sim.engine`` and ``sim.whatif`` may import it; it imports ``sim.input``.
Start reading at ``record.py``, then ``figures.py``.
"""

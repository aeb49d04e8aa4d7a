"""The process `lockstep agent`: one per node, made of parts."""

"""TrainingJob: from the job to its gang, its pods and its end."""

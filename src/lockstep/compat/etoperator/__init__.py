"""et-operator's elastic jobs and their scaling (``kai.alibabacloud.com``)."""

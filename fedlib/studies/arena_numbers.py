def derive(traces, p):
    return {}

"""What a SuperNode starts for every message: it hands it to the client's own process."""

from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

# by its path: `import fedlib` would load torch for every message
folder = Path(find_spec("fedlib").submodule_search_locations[0])
spec = spec_from_file_location("relay", folder / "flower" / "relay.py")
relay = module_from_spec(spec)
spec.loader.exec_module(relay)

app = relay.client_app("job:job", str(Path(__file__).parent))

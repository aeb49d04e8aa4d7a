"""The cluster's certificates: made once, found again, renewed in time, good for TLS both ways."""

import asyncio
import base64
import json
import ssl
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.x509.oid import NameOID

from lockstep.apiserver.auth.kubeconfig import write_kubeconfig
from lockstep.apiserver.auth.pki import LEAF_LIFETIME, RENEW_BEFORE, KeyPair, Pki


def everything(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def issue_all(pki: Pki) -> list[KeyPair]:
    pki.signing_key()
    return [
        pki.serving(["localhost", "127.0.0.1"]),
        pki.client("admin", user="admin", groups=["system:masters"]),
        pki.kubelet_client(),
        pki.node_agent(),
    ]


def test_a_restart_finds_what_the_first_start_made(tmp_path: Path) -> None:
    issue_all(Pki(tmp_path / "pki"))
    before = everything(tmp_path / "pki")
    issue_all(Pki(tmp_path / "pki"))
    assert everything(tmp_path / "pki") == before


def test_only_the_owner_may_read(tmp_path: Path) -> None:
    issue_all(Pki(tmp_path / "pki"))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "pki").iterdir()}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE((tmp_path / "pki").stat().st_mode) == 0o700


def test_a_restart_with_nothing_to_issue_loads_no_cryptography(tmp_path: Path) -> None:
    issue_all(Pki(tmp_path))
    script = (
        "import sys; from pathlib import Path; from lockstep.apiserver.auth.pki import Pki;"
        "p = Pki(Path(sys.argv[1])); p.serving(['localhost']); p.kubelet_client(); p.signing_key();"
        "print('cryptography' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("later", "renewed"),
    [(0.0, False), (LEAF_LIFETIME - RENEW_BEFORE - 60, False), (LEAF_LIFETIME - 60, True)],
)
def test_a_certificate_near_its_end_is_renewed(tmp_path: Path, later: float, renewed: bool) -> None:
    start = 1_800_000_000.0
    pair = Pki(tmp_path, clock=lambda: start).kubelet_client()
    before = pair.certificate.read_bytes()
    Pki(tmp_path, clock=lambda: start + later).kubelet_client()
    assert (pair.certificate.read_bytes() != before) is renewed


def test_a_new_host_name_is_added_to_the_old_ones(tmp_path: Path) -> None:
    Pki(tmp_path).serving(["localhost", "127.0.0.1"])
    pair = Pki(tmp_path).serving(["10.1.2.3"])
    certificate = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    addresses = {str(a) for a in names.get_values_for_type(x509.IPAddress)}
    assert addresses == {"127.0.0.1", "10.1.2.3"}


def test_a_pair_without_an_index_entry_is_made_anew(tmp_path: Path) -> None:
    """As after a crash between the files and the index: key and certificate may not match."""
    pair = Pki(tmp_path).kubelet_client()
    index = json.loads((tmp_path / "index.json").read_bytes())
    del index["kubelet-client"]
    (tmp_path / "index.json").write_text(json.dumps(index))
    before = pair.key.read_bytes()
    Pki(tmp_path).kubelet_client()
    assert pair.key.read_bytes() != before


def test_a_client_certificate_names_user_and_groups(tmp_path: Path) -> None:
    pair = Pki(tmp_path).client("x", user="jane", groups=["dev", "ops"])
    subject = x509.load_pem_x509_certificate(pair.certificate.read_bytes()).subject
    assert [a.value for a in subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["jane"]
    groups = [a.value for a in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    assert groups == ["dev", "ops"]


async def test_both_sides_trust_each_other_strictly(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    serving = pki.serving(["127.0.0.1"])
    client = pki.client("admin", user="admin", groups=["system:masters"])
    server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=pki.ca)
    server_side.load_cert_chain(serving.certificate, serving.key)
    server_side.verify_mode = ssl.CERT_REQUIRED
    client_side = ssl.create_default_context(cafile=pki.ca)
    client_side.verify_flags |= ssl.VERIFY_X509_STRICT
    client_side.load_cert_chain(client.certificate, client.key)

    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        subject = writer.get_extra_info("peercert")["subject"]
        writer.write(json.dumps(subject).encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=server_side)
    async with server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client_side)
        subject = json.loads(await reader.read())
        writer.close()
    assert subject == [[["organizationName", "system:masters"]], [["commonName", "admin"]]]


def test_a_kubeconfig_carries_all_that_a_client_needs(tmp_path: Path) -> None:
    pki = Pki(tmp_path / "pki")
    pair = pki.client("admin", user="admin", groups=["system:masters"])
    path = tmp_path / "configs" / "kubeconfig"
    write_kubeconfig(path, server="https://127.0.0.1:7443", ca=pki.ca, user="admin", pair=pair)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    config = yaml.safe_load(path.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    assert cluster["server"] == "https://127.0.0.1:7443"
    assert base64.b64decode(cluster["certificate-authority-data"]) == pki.ca.read_bytes()
    assert base64.b64decode(user["client-key-data"]) == pair.key.read_bytes()
    assert config["current-context"] == config["contexts"][0]["name"]
    assert [p.name for p in path.parent.iterdir()] == ["kubeconfig"]

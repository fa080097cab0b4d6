"""A certificate authority of a test's own."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """A certificate authority, in `file`, that certifies servers."""

    def __init__(self, folder: Path, name: str) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name, self.folder, self.file = _named(name), folder, folder / f"{name}.pem"
        authority = x509.BasicConstraints(ca=True, path_length=0)
        self.file.write_bytes(self._signed(self.name, self.key.public_key(), authority, critical=True))

    def certify(self, name: str) -> Path:
        """The file of a key and of its certificate for `name`."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.DNSName(name)])
        pem, pkcs8, clear = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        file = self.folder / "server.pem"
        certificate = self._signed(_named(name), key.public_key(), names, critical=False)
        file.write_bytes(key.private_bytes(pem, pkcs8, clear) + certificate)
        return file

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, extension: x509.ExtensionType, *, critical: bool
    ) -> bytes:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(extension, critical=critical)
            .sign(self.key, hashes.SHA256())
            .public_bytes(serialization.Encoding.PEM)
        )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])

/**
 * Hashes of other systems, each with the command that made it. `PASSWORD` stands for the password of this file, in UTF-8. Each program was
 * also asked whether the password fits its hash, and said yes.
 */
export const legacyPassword = 'Ärmel & naïve Straße 9'
export const pepper = 'a pepper of forty-eight hexadecimal digits'

export const legacyHashes = {
  // Django 3.2.25 (Debian's python3-django), as are its defaults:
  // python3 -c "from django.conf import settings; settings.configure(); from django.contrib.auth.hashers import make_password; print(make_password('PASSWORD'))"
  django: 'pbkdf2_sha256$260000$NpZrB8c9dTbEFBwpvcIkFA$pAbcSc49hR7szh14O+EweTIOgyzp3UGevGFPq9repbE=',
  // The same, `make_password('PASSWORD', salt='a.b/c d', hasher='pbkdf2_sha1')`, with PBKDF2SHA1PasswordHasher in PASSWORD_HASHERS
  djangoSha1: 'pbkdf2_sha1$260000$a.b/c d$NyCWPh9jBPrr02SUykyha8l833U=',
  // PHP 8.2.36: php -r "echo password_hash('PASSWORD', PASSWORD_BCRYPT);"
  php: '$2y$10$rxb3VjwaEYC4QJaz.Kfl4uvChqCbS/YN50s5me.mtqQTxlUSsrkvS',
  // Devise 4.8.1 and its bcrypt 3.1.18 on Ruby 3.1.2, with the pepper of this file:
  // ruby -rrails -rdevise -e "puts Devise::Encryptor.digest(Struct.new(:stretches, :pepper).new(10, 'PEPPER'), 'PASSWORD')"
  peppered: '$2a$10$ih20mQHjSr0al3QmwBGuQeSfqe51BpYs.5LSC33UAf.DXdHDjWPeq',
  // Firebase's own program (https://github.com/firebase/scrypt, commit 36feb92), with the parameters below:
  // ./scrypt "$signerKey" c2FsdCBvZiBhIHRlc3Q= Bw== 8 14 -P <<< 'PASSWORD'
  firebase:
    '$firebase-scrypt$c2FsdCBvZiBhIHRlc3Q=$7zBnqegHQoOQJEc443s5g15rYLg7j5R0vhMsBluoJPks4fb+VvPfdeA5zflXm8ZbOQTy2zPYf647pleamz9rmw==',
  // Made by Python's hashlib after the layout that Microsoft documents for PasswordHasher, version 3. Those of .NET are below.
  aspNet: 'AQAAAAEAACcQAAAAEAcICQoLDA0ODxAREhMUFRZsLbozu4h6T9geKZxeW9GxpVrBF0ZiBLc+YGq4PJP/+A==',
  aspNetSha512: 'AQAAAAIAAYagAAAAEAcICQoLDA0ODxAREhMUFRaLzqnmLG2Ci3mp+IbIYeVhl8t3aGdpF/wVLOfPID1tzQ==',
  aspNetSha1: 'AQAAAAAAAAPoAAAAEAcICQoLDA0ODxAREhMUFRbmeb+6Y5XDruEaAJGZDcm7lQTyUJnvgMudHGAwPeP1pw==',
} as const

/** The example in the README of Firebase's own program, which makes the same hash. */
export const firebase = {
  password: 'user1password',
  hash: '$firebase-scrypt$42xEC+ixf3L2lw==$lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==',
  parameters: {
    signerKey: 'jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==',
    saltSeparator: 'Bw==',
    rounds: 8,
    memCost: 14,
  },
} as const

/**
 * What .NET's PasswordHasher makes and takes, by its own tests: src/Identity/test/Identity.Test/PasswordHasherTest.cs of dotnet/aspnetcore,
 * commit 03741a0.
 */
export const microsoft = {
  password: 'my password',
  /** HashPassword_Version3, and the last of the success cases: SHA-256 with 250,000 iterations and a salt of 32 bytes. */
  hashes: [
    'AQAAAAEAACcQAAAAEAABAgMEBQYHCAkKCwwNDg+yWU7rLgUwPZb1Itsmra7cbxw2EFpwpVFIEtP+JIuUEw==',
    'AQAAAAEAA9CQAAAAIESkQuj2Du8Y+kbc5lcN/W/3NiAZFEm11P27nrSN5/tId+bR1SwV8CO1Jd72r4C08OLvplNlCDc3oQZ8efcW+jQ=',
  ],
  /** The other success cases of version 3, whose keys have 16, 64 and 16 bytes. No release of Identity makes such keys. */
  otherKeyLengths: [
    'AQAAAAIAAAAyAAAAEOMwvh3+FZxqkdMBz2ekgGhwQ4B6pZWND6zgESBuWiHw',
    'AQAAAAIAAAD6AAAAIJbVi5wbMR+htSfFp8fTw8N8GOS/Sje+S/4YZcgBfU7EQuqv4OkVYmc4VJl9AGZzmRTxSkP7LtVi9IWyUxX8IAAfZ8v+ZfhjCcudtC1YERSqE1OEdXLW9VukPuJWBBjLuw==',
    'AQAAAAAAAAD6AAAAEAhftMyfTJylOlZT+eEotFXd1elee8ih5WsjXaR3PA9M',
  ],
  /** The failure cases of version 3: another password, a key that is cut, and one with bytes behind it. */
  failures: [
    'AQAAAAAAAAD6AAAAEAhftMyfTJyAAAAAAAAAAAAAAAAAAAih5WsjXaR3PA9M',
    'AQAAAAIAAAAyAAAAEOMwvh3+FZxqkdMBz2ekgGhwQ4A=',
    'AQAAAAIAAAAyAAAAEOMwvh3+FZxqkdMBz2ekgGhwQ4B6pZWND6zgESBuWiHwAAAAAAAAAAAA',
  ],
} as const

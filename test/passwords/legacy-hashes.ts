/** Hashes of other systems, as those systems wrote them. */
export const legacyPassword = 'Ärmel & naïve Straße 9'
export const pepper = 'a pepper of forty-eight hexadecimal digits'

export const legacyHashes = {
  // Django 3.2, `make_password`
  django: 'pbkdf2_sha256$260000$NpZrB8c9dTbEFBwpvcIkFA$pAbcSc49hR7szh14O+EweTIOgyzp3UGevGFPq9repbE=',
  djangoSha1: 'pbkdf2_sha1$260000$a.b/c d$NyCWPh9jBPrr02SUykyha8l833U=',
  // PHP 8.2, `password_hash(…, PASSWORD_BCRYPT)`
  php: '$2y$10$rxb3VjwaEYC4QJaz.Kfl4uvChqCbS/YN50s5me.mtqQTxlUSsrkvS',
  // Ruby's bcrypt 3.1.18 over the password and the pepper behind it, which is what Devise's encryptor does
  peppered: '$2a$10$ih20mQHjSr0al3QmwBGuQeSfqe51BpYs.5LSC33UAf.DXdHDjWPeq',
  // Made by Python's hashlib after the layout that Microsoft documents for PasswordHasher, version 3; not by .NET itself
  aspNet: 'AQAAAAEAACcQAAAAEAcICQoLDA0ODxAREhMUFRZsLbozu4h6T9geKZxeW9GxpVrBF0ZiBLc+YGq4PJP/+A==',
  aspNetSha512: 'AQAAAAIAAYagAAAAEAcICQoLDA0ODxAREhMUFRaLzqnmLG2Ci3mp+IbIYeVhl8t3aGdpF/wVLOfPID1tzQ==',
  aspNetSha1: 'AQAAAAAAAAPoAAAAEAcICQoLDA0ODxAREhMUFRbmeb+6Y5XDruEaAJGZDcm7lQTyUJnvgMudHGAwPeP1pw==',
} as const

/** The example in the README of Firebase's own scrypt program (https://github.com/firebase/scrypt). */
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

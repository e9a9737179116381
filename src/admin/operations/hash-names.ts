/** The forms of stored hashes, and what a host does so that people with such a hash can log in. */
const forms: readonly (readonly [form: RegExp, name: string, advice: string])[] = [
  [/^\$2[aby]\$/, 'bcrypt', 'install the package bcrypt, or add bcryptReader()'],
  [/^\$2x\$/, 'bcrypt of the form $2x$', 'doorward cannot read it, because a faulty program made the hash'],
  [/^\$argon2/, 'argon2', 'use argon2idHasher(), which reads argon2id hashes within its limits'],
  [/^argon2\$argon2/, "Django's argon2", 'remove the first `argon2`, because argon2idHasher() reads the rest'],
  [/^bcrypt\$\$2/, "Django's bcrypt", 'remove the first `bcrypt$`, because bcryptReader() reads the rest'],
  [/^pbkdf2_sha(1|256)\$/, "Django's PBKDF2", 'add djangoPbkdf2Reader()'],
  [/^\$firebase-scrypt\$/, "Firebase's scrypt", 'add firebaseScryptReader({ … })'],
  [/^AQAAAA/, 'ASP.NET Identity', 'add aspNetIdentityReader()'],
  [/^\$scrypt\$|^scrypt[:$]/, 'scrypt', 'doorward has no reader for it: write a reader, { name, reads, verify }'],
  [
    /^([0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{128})$/i,
    'a bare digest',
    'doorward cannot read it: import the account without a hash',
  ],
]

/** Returns the advice for a hash. The advice never contains a part of the hash. */
export function adviceOnHash(hash: string): string {
  const [, name, advice] = forms.find(([form]) => form.test(hash)) ?? []
  if (name === undefined || advice === undefined)
    return 'doorward does not know this hash. It never imports a plain password: hash the password, or omit it.'
  return `The hasher of this app does not read ${name}: ${advice} (docs/passwords.md).`
}

/** The forms of stored hashes, and what a host does so that people with such a hash can log in. */
const forms: readonly (readonly [form: RegExp, name: string, advice: string])[] = [
  [/^\$2[aby]\$/, 'bcrypt', 'install the package bcrypt, or add bcryptReader()'],
  [/^\$2x\$/, 'bcrypt of the form $2x$', 'none reads it, because it was made by a broken program'],
  [/^\$argon2/, 'argon2', 'use argon2idHasher(), which reads argon2id within its bounds'],
  [/^argon2\$argon2/, "Django's argon2", 'take the first `argon2` off: the rest is what argon2idHasher() reads'],
  [/^bcrypt\$\$2/, "Django's bcrypt", 'take the first `bcrypt$` off: the rest is what bcryptReader() reads'],
  [/^pbkdf2_sha(1|256)\$/, "Django's PBKDF2", 'add djangoPbkdf2Reader()'],
  [/^\$firebase-scrypt\$/, "Firebase's scrypt", 'add firebaseScryptReader({ … })'],
  [/^AQAAAA/, 'ASP.NET Identity', 'add aspNetIdentityReader()'],
  [/^\$scrypt\$|^scrypt[:$]/, 'scrypt', 'none of ours reads it: write a reader, { name, reads, verify }'],
  [/^([0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{128})$/i, 'a bare digest', 'none reads it: import the account without a hash'],
]

/** Returns the advice for a hash. The advice never contains a part of the hash. */
export function adviceOnHash(hash: string): string {
  const [, name, advice] = forms.find(([form]) => form.test(hash)) ?? []
  if (name === undefined || advice === undefined)
    return 'This is no hash that doorward knows. A plain password is never imported: hash it, or leave it out.'
  return `The hasher of this app does not read ${name}: ${advice} (docs/passwords.md).`
}

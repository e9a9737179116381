const beginning = /^(\$[a-z0-9-]+\$|(argon2|bcrypt(_sha256)?|pbkdf2_sha(1|256|512)|scrypt)\$|(pbkdf2|scrypt):|AQAAAA)/

/**
 * Returns true for a text that begins with the name of a hash algorithm, as a hash does and a plain password does not: `$2b$`, `$argon2id$`,
 * `pbkdf2_sha256$`, the `AQAAAA` of ASP.NET. A bare digest names none.
 */
export function namesAlgorithm(text: string): boolean {
  return /^[!-~]{32,}$/.test(text) && beginning.test(text)
}

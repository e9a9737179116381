import { ConfigurationError } from '../core/errors'

/** Verifies passwords against the hashes of another system. A reader makes no hashes. */
export interface PasswordReader {
  readonly name: string
  /** Returns true if `verify` can read this hash. */
  reads(hash: string): boolean
  /** Returns true if the password matches. Returns false for a hash that the reader cannot read. */
  verify(hash: string, password: string): Promise<boolean>
}

/** HMAC pads its key with NUL, so a password with NULs at its end would match the hash of the password without. */
export function hasNul(password: string): boolean {
  return password.includes('\0')
}

/** A row of the table must not keep a thread busy for minutes. No known system uses more. */
export const mostIterations = 10_000_000

export interface PepperOptions {
  /** The secret that the other system stored outside its table. */
  pepper: string
  /** Combines the password and the pepper as the other system did. Default: the password followed by the pepper, as in Devise. */
  combine?: (password: string, pepper: string) => string
}

/** Reads hashes with a pepper: `pepperedReader(bcryptReader(), { pepper })`. @throws ConfigurationError for no reader or no pepper */
export function pepperedReader(reader: PasswordReader, { pepper, combine = behind }: PepperOptions): PasswordReader {
  if (typeof reader?.verify !== 'function')
    throw new ConfigurationError('pepperedReader: the first argument must be a reader, such as bcryptReader().')
  if (typeof pepper !== 'string' || pepper === '') throw new ConfigurationError('pepperedReader: pepper must be a text that is not empty.')
  return {
    name: `peppered ${reader.name}`,
    reads: (hash) => reader.reads(hash),
    verify: (hash, password) => reader.verify(hash, combine(password, pepper)),
  }
}

function behind(password: string, pepper: string): string {
  return password + pepper
}

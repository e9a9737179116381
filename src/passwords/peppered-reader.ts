import { ConfigurationError } from '../core/errors'
import type { PasswordReader } from './password-reader'

export interface PepperOptions {
  /** The secret that the other system stored outside its table. */
  pepper: string
  /** Combines the password and the pepper as the other system did. Default: the password followed by the pepper, as in Devise. */
  combine?: (password: string, pepper: string) => string
}

/**
 * Returns a reader for hashes of a password with a pepper: `pepperedReader(bcryptReader(), { pepper })`.
 * @throws ConfigurationError for a value that is not a reader, and for an empty pepper
 */
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

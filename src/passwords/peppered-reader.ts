import { ConfigurationError } from '../errors'
import type { PasswordReader } from './password-reader'

export interface PepperOptions {
  /** The secret that the other system kept outside of its table. */
  pepper: string
  /** How the two became one text. Default: the password, and the pepper right behind it, as Devise does. */
  combine?: (password: string, pepper: string) => string
}

/**
 * A reader for hashes of a password with a pepper: `pepperedReader(bcryptReader(), { pepper })`.
 * @throws ConfigurationError for what is no reader, and for an empty pepper
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

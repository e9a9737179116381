import { AppError } from './errors'
import { describeError, hasOwnMessage } from './logger'

/**
 * Returns the message of our own error, and null for any other error. It returns no foreign message, because messages of drivers, adapters
 * and hosts' modules can contain SQL, a password, a hash or an address.
 */
export function ownSentence(error: unknown): string | null {
  return error instanceof AppError || hasOwnMessage(error) ? error.message : null
}

/** Returns the part of an error that a person may read. This part is our own message, or only the code or the name. */
export function sentenceOf(error: unknown): string {
  const { code, name } = describeError(error)
  return ownSentence(error) ?? code ?? name
}

import { AppError } from './errors'
import { describeError, hasOwnMessage } from './logger'

/**
 * Returns the message of our own error, and null for any other error. The message of a driver, of an adapter or of a host's module may
 * contain SQL, a password, a hash or an address.
 */
export function ownSentence(error: unknown): string | null {
  return error instanceof AppError || hasOwnMessage(error) ? error.message : null
}

/** Returns the text of an error that a person may read: our own message, or only the code or the name. */
export function sentenceOf(error: unknown): string {
  const { code, name } = describeError(error)
  return ownSentence(error) ?? code ?? name
}

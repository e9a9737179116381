import { AppError } from './errors'
import { describeError, hasOwnMessage } from './logger'

/** Null for foreign errors: messages of drivers, adapters and hosts' modules can contain SQL, a password, a hash or an address. */
export function ownSentence(error: unknown): string | null {
  return error instanceof AppError || hasOwnMessage(error) ? error.message : null
}

export function sentenceOf(error: unknown): string {
  const { code, name } = describeError(error)
  return ownSentence(error) ?? code ?? name
}

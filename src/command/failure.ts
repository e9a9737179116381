import { inspect } from 'node:util'
import { ownSentence, sentenceOf } from '../error-sentence'
import { AppError } from '../errors'
import { CommandRefusal, UsageError } from './answer'
import { printable } from './printable'

export interface Failure {
  readonly code: string
  readonly message: string
  readonly exitCode: 1 | 2
}

/** Describes an error. An error of the app's own copy of the library also counts as an error of the library. */
export function described(error: unknown): Failure {
  if (error instanceof UsageError) return { code: 'USAGE', message: error.message, exitCode: 2 }
  if (error instanceof CommandRefusal) return { code: error.code, message: error.message, exitCode: 1 }
  if (!(error instanceof AppError)) return { code: 'FAILED', message: told(error), exitCode: 1 }
  const about = Object.keys(error.details).length > 0 ? ` ${JSON.stringify(error.details)}` : ''
  return { code: error.code, message: `${error.message}${about}`, exitCode: 1 }
}

/**
 * Returns the message of an error of this library. For any other error, returns only the code or the name. The message of a foreign error
 * may contain personal data.
 */
export function told(error: unknown): string {
  return ownSentence(error) ?? `Failed with ${sentenceOf(error)}. --verbose shows the whole error, which may contain personal data.`
}

/** Returns the messages and stacks of an error and its causes. Only `--verbose` shows this text. */
export function wholeOf(error: unknown): string {
  return causesOf(error)
    .map((cause) => (cause instanceof Error ? String(cause.stack) : inspect(cause)))
    .join('\nCause: ')
    .split('\n')
    .map(printable)
    .join('\n')
}

/** Returns the error and its causes, outermost first. The list has at most 10 entries, because an error can be its own cause. */
function causesOf(error: unknown): unknown[] {
  const causes = [error]
  while (causes.length < 10 && causes.at(-1) instanceof Error && (causes.at(-1) as Error).cause !== undefined)
    causes.push((causes.at(-1) as Error).cause)
  return causes
}

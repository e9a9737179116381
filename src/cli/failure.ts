import { inspect } from 'node:util'
import { ownSentence, sentenceOf } from '../core/error-sentence'
import { AppError, ServiceUnavailableError } from '../core/errors'
import { CommandRefusal, printable, UsageError } from './terminal'

export interface Failure {
  readonly code: string
  readonly message: string
  readonly exitCode: 1 | 2
}

/** An error of the app's own copy of the library also counts as ours. */
export function described(error: unknown): Failure {
  if (error instanceof UsageError) return { code: 'USAGE', message: error.message, exitCode: 2 }
  if (error instanceof CommandRefusal) return { code: error.code, message: error.message, exitCode: 1 }
  if (!(error instanceof AppError)) return { code: 'FAILED', message: told(error), exitCode: 1 }
  return { code: error.code, message: sentenceFor(error), exitCode: 1 }
}

/** For an administrator. The message of the error itself is for the person at the form. */
function sentenceFor(error: AppError): string {
  const { rule, errors, ...details } = error.details as { rule?: string; errors?: readonly FieldError[]; [name: string]: unknown }
  if (errors)
    return errors
      .map(({ path, rule }) => `${path === '' ? 'The input' : `\`${path}\``} ${fieldRules[rule] ?? `is not valid (${rule})`}.`)
      .join(' ')
  if (rule !== undefined) return (passwordRules[rule] ?? (() => `The password is refused by the rule \`${rule}\`.`))(details)
  if (error instanceof ServiceUnavailableError) return ownSentence(error.cause) ?? error.message
  const about = Object.entries(details).map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
  return about.length > 0 ? `${error.message.replace(/\.$/, '')} (${about.join(', ')}).` : error.message
}

interface FieldError {
  readonly path: string
  readonly rule: string
}

const fieldRules: Readonly<Record<string, string>> = {
  'any.invalid': 'has a value that is not valid',
  'any.required': 'is missing',
  'any.unknown': 'is not a field of an account',
  'number.between': 'is out of range',
  'string.email': 'is not an email address',
  'string.empty': 'is empty',
  'string.malformed': 'contains characters that cannot be stored',
  'string.max': 'is too long',
  unstorable: 'has a value that the column cannot store',
}

const passwordRules: Readonly<Record<string, (details: Readonly<Record<string, unknown>>) => string>> = {
  malformed: () => 'The password contains characters that are not valid text.',
  too_short: ({ min }) => `The password is too short: at least ${min} characters.`,
  too_long: ({ max }) => `The password is too long: at most ${max} bytes of UTF-8.`,
  missing_classes: ({ missing }) => `The password has no character of these classes: ${[missing].flat().join(', ')}.`,
  too_common: () => 'The password is easy to guess: it is common, or contains the address or the name.',
  breached: () => 'The password was found in a data breach of another service.',
  unchecked: () => 'The password could not be checked against known data breaches. Try again.',
}

/** Only the code or the name of a foreign error, because its message may contain personal data. */
export function told(error: unknown): string {
  return ownSentence(error) ?? `Failed with ${sentenceOf(error)}. --verbose shows the whole error, which may contain personal data.`
}

/** Only `--verbose` shows this text. */
export function wholeOf(error: unknown): string {
  return causesOf(error)
    .map((cause) => (cause instanceof Error ? String(cause.stack) : inspect(cause)))
    .join('\nCause: ')
    .split('\n')
    .map(printable)
    .join('\n')
}

/** Outermost first, at most 10, because an error can be its own cause. */
function causesOf(error: unknown): unknown[] {
  const causes = [error]
  while (causes.length < 10 && causes.at(-1) instanceof Error && (causes.at(-1) as Error).cause !== undefined)
    causes.push((causes.at(-1) as Error).cause)
  return causes
}

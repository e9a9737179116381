import { CommandRefusal, UsageError } from './answer'

export interface Failure {
  readonly code: string
  readonly message: string
  readonly exitCode: 1 | 2
}

/** Describes an error. An error of the library is from the app's copy, so it is recognized by its shape. */
export function described(error: unknown): Failure {
  if (error instanceof UsageError) return { code: 'USAGE', message: error.message, exitCode: 2 }
  const { code, details, message } = Object(error) as Record<string, unknown>
  const shown = typeof message === 'string' ? message : String(error)
  if (typeof code !== 'string' || (!(error instanceof CommandRefusal) && typeof details !== 'object'))
    return { code: 'FAILED', message: shown, exitCode: 1 }
  const about = details && Object.keys(details).length > 0 ? ` ${JSON.stringify(details)}` : ''
  return { code, message: `${shown}${about}`, exitCode: 1 }
}

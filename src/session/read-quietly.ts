import { AppError } from '../errors'

/** What `read` returns; null where it refuses: a token that is none of ours names nothing. */
export function readQuietly<T>(read: () => T): T | null {
  try {
    return read()
  } catch (error) {
    if (error instanceof AppError) return null
    throw error
  }
}

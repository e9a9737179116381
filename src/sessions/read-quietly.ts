import { AppError } from '../core/errors'

/** Returns the result of `read`, or null if it rejects the token with an AppError. */
export function readQuietly<T>(read: () => T): T | null {
  try {
    return read()
  } catch (error) {
    if (error instanceof AppError) return null
    throw error
  }
}

import { ServiceUnavailableError } from '../../core/errors'
import type { CapturedAnswer } from './captured-answer'

export interface Entry {
  readonly fingerprint: string
  /** Null while the request is still running. */
  readonly answer: CapturedAnswer | null
}

export function entryOf({ fingerprint, answer }: Entry): string {
  return JSON.stringify({ fingerprint, answer: answer && { ...answer, body: answer.body.toString('base64') } })
}

/**
 * Reads a stored entry.
 * @throws ServiceUnavailableError for a value that the library did not write. The library cannot know whether the request ran before.
 */
export function readEntry(text: unknown): Entry {
  try {
    const { fingerprint, answer } = JSON.parse(String(text)) as {
      fingerprint: string
      answer: (Omit<CapturedAnswer, 'body'> & { body: string }) | null
    } // any other value is rejected below
    if (typeof fingerprint !== 'string' || answer === undefined) throw new TypeError('The cache of answers holds something else.')
    return { fingerprint, answer: answer && { ...answer, body: Buffer.from(answer.body, 'base64') } }
  } catch (error) {
    throw new ServiceUnavailableError({ cause: error })
  }
}

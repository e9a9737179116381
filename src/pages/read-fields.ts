import type { Request, Response } from 'express'
import { readForm } from '../http/json-body'
import type { Fields } from './page-site'

/** The fields of a form. */
export interface Sent {
  readonly fields: Fields
  /**
   * The names of fields that the page cannot read, because the field was sent twice, or because a parser of the host converted its text to
   * another type.
   */
  readonly unreadable: readonly string[]
}

/**
 * Reads a form.
 * @throws PayloadTooLargeError if the body is too large; ValidationError if the body is not a form
 */
export async function readSent(req: Request, res: Response): Promise<Sent> {
  const entries = Object.entries((await readForm(req, res)) as object)
  return {
    fields: Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string')),
    unreadable: entries.filter(([, value]) => typeof value !== 'string').map(([name]) => name),
  }
}

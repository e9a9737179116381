import type { Request, Response } from 'express'
import { readForm } from '../http/json-body'
import type { Fields } from './page-site'

/** The fields of a form. */
export interface Sent {
  readonly fields: Fields
  /** Fields that were sent twice, or that a parser of the host's turned into something other than text. */
  readonly unreadable: readonly string[]
}

/**
 * Reads a form.
 * @throws PayloadTooLargeError, ValidationError for a body that is no form
 */
export async function readSent(req: Request, res: Response): Promise<Sent> {
  const entries = Object.entries((await readForm(req, res)) as object)
  return {
    fields: Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string')),
    unreadable: entries.filter(([, value]) => typeof value !== 'string').map(([name]) => name),
  }
}

import type { Request, Response } from 'express'
import { readForm } from '../http/json-body'
import type { Fields } from './page-site'

/** A form as it came. */
export interface Sent {
  readonly fields: Fields
  /** Fields that came twice, or that a parser of the host made into something else than a text. */
  readonly unreadable: readonly string[]
}

/** @throws PayloadTooLargeError, ValidationError for a body that is no form */
export async function readSent(req: Request, res: Response): Promise<Sent> {
  const entries = Object.entries((await readForm(req, res)) as object)
  return {
    fields: Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string')),
    unreadable: entries.filter(([, value]) => typeof value !== 'string').map(([name]) => name),
  }
}

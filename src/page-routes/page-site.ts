import type { Request, Response } from 'express'
import type { BoundService } from '../bound-service/bound-service'
import type { AuthContext } from '../context'
import type { Guards } from '../guards/guards'
import type { Reader } from '../pages/reader'

/** What the pages stand on. */
export interface PageSite {
  readonly ctx: AuthContext
  readonly guards: Guards
  /** What the routes do, asked in the name of a request. */
  readonly bind: (req: Request, res: Response) => BoundService
}

/** Somebody opens a page, or sends its form. */
export interface Visit {
  readonly ctx: AuthContext
  readonly site: PageSite
  readonly req: Request
  readonly res: Response
  readonly reader: Reader
  /** What the routes do, with their limits and guards, in the name of this request. */
  readonly ask: BoundService
  /** Where the person goes afterwards; checked. Null: nowhere in particular. */
  readonly returnTo: string | null
}

/** What a form sent: one text by field. */
export type Fields = Readonly<Record<string, string>>

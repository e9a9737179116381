import type { Request, Response } from 'express'
import type { BoundService } from '../bound-service/bound-service'
import type { AuthContext } from '../context'
import type { Guards } from '../guards/guards'
import type { Reader } from '../pages/reader'

/** What the pages need. */
export interface PageSite {
  readonly ctx: AuthContext
  readonly guards: Guards
  /** Binds the service to a request, so that its methods do what the routes do. */
  readonly bind: (req: Request, res: Response) => BoundService
}

/** A request that opens a page, or sends its form. */
export interface Visit {
  readonly ctx: AuthContext
  readonly site: PageSite
  readonly req: Request
  readonly res: Response
  readonly reader: Reader
  /** The service for this request, with the limits and guards of the routes. */
  readonly ask: BoundService
  /** The redirect target afterwards, checked. Null if there is none. */
  readonly returnTo: string | null
}

/** The values of a form, one text for each field. */
export type Fields = Readonly<Record<string, string>>

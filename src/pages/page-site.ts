import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import type { Guards } from '../guards/guards'
import type { Reader } from '../http/html/reader'
import type { BoundService } from '../router/request-service/request-service'

/** The objects that all pages need. */
export interface PageSite {
  readonly ctx: AuthContext
  readonly guards: Guards
  /** Binds the service to a request. The methods of the bound service do the same as the routes. */
  readonly bind: (req: Request, res: Response) => BoundService
}

/** A request that opens a page or sends its form. */
export interface Visit {
  readonly ctx: AuthContext
  readonly site: PageSite
  readonly req: Request
  readonly res: Response
  readonly reader: Reader
  /** The service for this request. The methods of the service apply the rate limits and guards of the routes. */
  readonly ask: BoundService
  /** The target of the redirect after the form succeeded. It is already checked. Null: there is no target. */
  readonly returnTo: string | null
}

/** The values of a form, with one text for each field. */
export type Fields = Readonly<Record<string, string>>

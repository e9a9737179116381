import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import type { Asset } from '../core/theme/theme'
import type { Guards } from '../guards/guards'
import type { Reader } from '../http/html/reader'
import type { Route } from '../http/routes'
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

const yearSeconds = 31_536_000

/** Routes of the style sheet and the script. Each file name contains a hash of the content, so browsers can cache the files for a year. */
export function assetRoutes({ ctx }: PageSite): Route[] {
  const { style, script } = ctx.theme
  return [style, script].map((asset) => ({
    method: 'GET',
    path: asset.route,
    describes: { summary: `A file of the pages (${asset.type})`, answers: [{ status: 200, description: 'The file.' }] },
    handle: (_req, res) => sendAsset(res, asset),
  }))
}

function sendAsset(res: Response, { type, text }: Asset): void {
  res.setHeader('Content-Type', type)
  res.setHeader('Cache-Control', `public, max-age=${yearSeconds}, immutable`)
  res.removeHeader('Pragma')
  res.setHeader('Cross-Origin-Resource-Policy', 'same-origin')
  res.end(text)
}

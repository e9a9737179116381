import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import type { Asset } from '../core/theme/theme'
import type { Guards } from '../guards/guards'
import type { Reader } from '../http/html/reader'
import type { Route } from '../http/routes'
import type { BoundService } from '../router/request-service/request-service'

export interface PageSite {
  readonly ctx: AuthContext
  readonly guards: Guards
  /** The methods of the bound service do the same as the routes. */
  readonly bind: (req: Request, res: Response) => BoundService
}

export interface Visit {
  readonly ctx: AuthContext
  readonly site: PageSite
  readonly req: Request
  readonly res: Response
  readonly reader: Reader
  /** Applies the rate limits and guards of the routes. */
  readonly ask: BoundService
  /** The redirect after the form succeeded. Already checked. */
  readonly returnTo: string | null
}

export type Fields = Readonly<Record<string, string>>

const yearSeconds = 31_536_000

/** Each file name contains a hash of the content, so browsers can cache the files for a year. */
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

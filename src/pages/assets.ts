import type { Response } from 'express'
import type { Asset } from '../core/theme/asset'
import type { Route } from '../http/routes'
import type { PageSite } from './page-site'

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

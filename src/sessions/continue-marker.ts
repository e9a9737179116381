import { createHash } from 'node:crypto'
import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { epochSeconds } from './private-token'
import { readProofCookie, setProofCookie } from './proof-cookies'

/** A page, and an end time in seconds since 1970. Until the end time, the browser counts as just redirected to the page. */
type Mark = readonly [page: string, end: number]

const cookieName = 'auth_continue'
const seconds = 10
/** The maximum number of pages that the marker remembers. There can be several pages, because a browser can have several tabs. */
const mostPages = 10

/** Returns true if this browser was redirected to the page less than 10 seconds ago. In that case the new access cookie did not help. */
export function wasSentBack(ctx: AuthContext, req: Request, page: string): boolean {
  return readMarks(ctx, req).some(([marked]) => marked === digestOf(page))
}

export function markPage(ctx: AuthContext, req: Request, res: Response, page: string): void {
  const mark: Mark = [digestOf(page), epochSeconds(ctx.now()) + seconds]
  setProofCookie(ctx, res, cookieName, JSON.stringify([mark, ...readMarks(ctx, req)].slice(0, mostPages)), seconds)
}

function readMarks(ctx: AuthContext, req: Request): Mark[] {
  const marks = JSON.parse(readProofCookie(ctx, req, cookieName) ?? '[]') as Mark[] // our MAC protects the value, so `markPage` wrote it
  return marks.filter(([, end]) => end > epochSeconds(ctx.now()))
}

/** Returns a digest of the page, because its URL can be longer than a cookie. */
function digestOf(page: string): string {
  return createHash('sha256').update(page).digest('base64url')
}

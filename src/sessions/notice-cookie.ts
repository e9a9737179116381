import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import type { TextKey } from '../core/texts/texts'
import { clearProofCookie, readProofCookie, setProofCookie } from './proof-cookies'

/** Names a message of a page. The name is the end of the text key, such as `not_saved` of `notice.not_saved`. */
export type NoticeWord = TextKey extends infer Key ? (Key extends `notice.${infer Word}` ? Word : never) : never

const noticeCookieName = 'auth_notice'
const seconds = 60

/** Stores a message for the next page. The cookie has a MAC, so an attacker's link cannot choose the message of a page. */
export function leaveNotice(ctx: AuthContext, res: Response, word: NoticeWord): void {
  setProofCookie(ctx, res, noticeCookieName, word, seconds)
}

/** Returns the stored message once, and clears the cookie. */
export function takeNotice(ctx: AuthContext, req: Request, res: Response): NoticeWord | null {
  const word = readProofCookie(ctx, req, noticeCookieName)
  if (word !== null) clearProofCookie(ctx, res, noticeCookieName)
  return word as NoticeWord | null // our MAC is valid, so `leaveNotice` wrote it
}

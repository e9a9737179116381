import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import type { TextKey } from '../texts/texts'
import { clearProofCookie, readProofCookie, setProofCookie } from './proof-cookies'

/** What a page says was done: the end of a text's name, such as `not_saved` of `notice.not_saved`. */
export type NoticeWord = TextKey extends infer Key ? (Key extends `notice.${infer Word}` ? Word : never) : never

const name = 'auth_notice'
const seconds = 60

/** For the page that comes next. A word under our MAC: no link can make up what a page says. */
export function leaveNotice(ctx: AuthContext, res: Response, word: NoticeWord): void {
  setProofCookie(ctx, res, name, word, seconds)
}

/** Once: the page that shows it clears it. */
export function takeNotice(ctx: AuthContext, req: Request, res: Response): NoticeWord | null {
  const word = readProofCookie(ctx, req, name)
  if (word !== null) clearProofCookie(ctx, res, name)
  return word as NoticeWord | null // under our MAC: what `leaveNotice` wrote
}

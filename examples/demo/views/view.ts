import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { RequestHandler } from 'express'
import { deliveryOf } from '../delivery'
import { type Language, languageOf } from '../language'
import { portuguese } from './portuguese'

/** One of the app's pages, in the reader's language, and saying how the app keeps people signed in: what its file has between `{{` and `}}` is English, and is translated. */
export function view(file: string): RequestHandler {
  const source = readFileSync(path.join(import.meta.dirname, file), 'utf8')
  const pages: Record<Language, string> = {
    'en-US': translate(source, (english) => english),
    'pt-BR': translate(source, inPortuguese).replace('lang="en-US"', 'lang="pt-BR"'),
  }
  return (request, response) => {
    // Some of them have a token in their address.
    const page = pages[languageOf(request)].replace(/<html [^>]+/, `$& data-delivery="${deliveryOf(request)}"`)
    response.set('Cache-Control', 'no-store').send(page)
  }
}

function translate(source: string, into: (english: string) => string): string {
  return source.replace(/\{\{(.+?)\}\}/g, (_marked, english: string) => into(english))
}

/** @throws Error at the start of the app, not on somebody's screen */
function inPortuguese(english: string): string {
  const text = portuguese[english]
  if (text === undefined) throw new Error(`There is no Portuguese for "${english}".`)
  return text
}

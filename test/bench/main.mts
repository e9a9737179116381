/** `npm run bench -- <name> [its arguments]`, at a quiet moment; each is a file beside this one and says what it measures. */
import { readdirSync } from 'node:fs'

const names = readdirSync(import.meta.dirname).flatMap((file) => /^(?!main\.)([\w-]+)\.mts$/.exec(file)?.[1] ?? [])
const [name = ''] = process.argv.splice(2, 1) // what is left is the bench's own
if (!names.includes(name)) throw new Error(`npm run bench -- ${names.join(' | ')}`)
await import(`./${name}.mjs`)

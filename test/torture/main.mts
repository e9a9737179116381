/** `npm run torture -- <name> [its arguments]`: what takes too long for every run. Each is a file beside this one, says what it does to the library, prints what it saw and exits with 1 on a violation. */
import { readdirSync } from 'node:fs'

const names = readdirSync(import.meta.dirname).flatMap((file) => /^(?!main\.)([\w-]+)\.mts$/.exec(file)?.[1] ?? [])
const [name = ''] = process.argv.splice(2, 1) // what is left is the torture's own
if (!names.includes(name)) throw new Error(`npm run torture -- ${names.join(' | ')}`)
await import(`./${name}.mjs`)

import { once } from 'node:events'
import { run } from './run'
import { terminalOf } from './terminal'

// Standard output is only for the result, so the app's own messages go to standard error.
console.log = console.info = console.debug = console.error

void run(process.argv.slice(2), {
  env: process.env,
  folder: process.cwd(),
  out: (text) => process.stdout.write(text) || once(process.stdout, 'drain'),
  err: (text) => process.stderr.write(text),
  terminal: terminalOf(process.stdin, process.stderr),
  stdin: () => process.stdin,
}).then((exitCode) => {
  // An open handle of the app, such as a connection pool, would keep the process running.
  process.stdout.write('', () => process.exit(exitCode))
})

import { storeContract } from './contract.ts'
import { openInMemory, openOnDisk } from './open-sqlite.ts'

storeContract('sqlite in memory', openInMemory)
storeContract('sqlite on disk', openOnDisk)

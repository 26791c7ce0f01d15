module edge

go 1.24
